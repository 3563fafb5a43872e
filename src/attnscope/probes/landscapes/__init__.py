"""Loss over planes and along directions: surfaces, their roughness and their sharpness."""
