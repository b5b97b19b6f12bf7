"""Where the tokens of a case lie in a paged cache: the same order of pages for every peer that has some."""

import numpy as np


class Pages:
    """Pages of `tokens` tokens; those of a sequence are anywhere in the cache."""

    def __init__(self, case, tokens):
        self.tokens = tokens
        self.counts = [-(-keys // tokens) for _, keys in case.sequences]
        self.begins = np.concatenate([[0], np.cumsum(self.counts)])
        # The place of each sequence's pages, sequence by sequence.
        self.order = np.random.default_rng(2).permutation(sum(self.counts))

    def table(self, unused):
        """Numbers of pages, a row a sequence."""
        table = np.full((len(self.counts), max(self.counts)), unused)
        for row, begin, count in zip(table, self.begins, self.counts):
            row[:count] = self.order[begin : begin + count]
        return table

    def slots(self, sequence, begin, end):
        """Places of these tokens of a sequence, counted in tokens."""
        tokens = np.arange(begin, end)
        return self.order[self.begins[sequence] + tokens // self.tokens] * self.tokens + tokens % self.tokens
