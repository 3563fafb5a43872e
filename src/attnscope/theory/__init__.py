"""Closed forms and bounds, one package a paper, named by citation key.

A theory predicts an observable on the run's own coordinates, so that comparing is subtraction.
"""
