"""Learning from judgement: render, pack, train, sample, judge. Knows no database and no queue."""
