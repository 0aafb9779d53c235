"""Words that cannot be memorised: banks dealt to train, dev and test, and wordings made from them."""
