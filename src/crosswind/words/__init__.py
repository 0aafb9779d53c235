"""Words that cannot be memorised, and what is held out from training.

banks.py reads the banks, whose entries `banks/make.py` deals to train, dev and test. wording.py says requests in other
words. held_out.py says which kinds of perturbation no training data is made with.
"""
