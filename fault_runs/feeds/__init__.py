"""Fault runs of feeds."""
