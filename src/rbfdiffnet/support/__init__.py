"""What every part of the package needs: checks of arguments, threads, progress, whole files, text.

To add a check or a helper that several subpackages need, put it here.
Nothing here knows networks, series or frames, and nothing here imports another subpackage.
"""
