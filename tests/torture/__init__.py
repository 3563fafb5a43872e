"""Programs that try to break what is promised, by numbers: ``make torture``."""
