"""The review sheet: one HTML file that says all of a sizing to people without this tool, on screen and on paper."""

from sizing.sheet.page import sheet_of
from sizing.sheet.pdf import Paper, PdfError, find_chromium, sheet_pdf

__all__ = [
    "Paper",
    "PdfError",
    "find_chromium",
    "sheet_of",
    "sheet_pdf",
]
