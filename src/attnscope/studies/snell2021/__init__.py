"""Studies of Snell 2021: lexical knowledge first, attention second."""
