"""Words that cannot be memorised, and what is held out from training.

banks.py reads the banks. dealing.py deals what people wrote to train, dev and test: for `banks/make.py`, which makes
ours, and for plug-ins. wording.py says requests in other words. held_out.py says which kinds of perturbation no
training data is made with.
"""
