"""The network that was trained on simulated series: its inputs, its weights and its training.

Files here know arrays of series, right-aligned, and nothing of frames or models. Weights come from
``python -m rbfdiffnet.pretrained.train``, never from real series. No file of `models`, or of a
folder below it, is imported here.
"""
