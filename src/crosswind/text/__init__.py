"""What agents write, read back: values, answers and speech acts in plain words.

sentences.py    sentences in a plain form, and what each clause commits its speaker to
"""
