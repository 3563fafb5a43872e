"""What a recording does beside reading: costs, losses, processes, and who hears of it live."""
