"""What can go wrong, as exceptions."""


class Refusal(Exception):
    """A program that peakproof leaves as it is, with the reason.

    `line` is the 1-based line of the generated source, or None; `text` is that statement.
    """

    def __init__(self, reason, line=None, text=None):
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.text = text

    def __str__(self):
        where = f"line {self.line}: " if self.line is not None else ""
        text = f": {self.text.splitlines()[0][:160]}" if self.text else ""
        return f"{where}{self.reason}{text}"
