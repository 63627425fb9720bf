"""How each conclusion of the paper's text is judged, by the numbers that came out."""
