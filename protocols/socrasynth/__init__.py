"""SocraSynth: two sides debate a subject topic by topic, a panel judges their closing statements."""
