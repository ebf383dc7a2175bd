"""The untrusted process that loads one candidate and obeys the evaluator."""
