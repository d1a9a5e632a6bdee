"""The parts of bench/times.py."""
