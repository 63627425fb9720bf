"""Conclusions on classification and recommendation: Tables V and VII."""

from paper.verdicts.conclusion import Conclusion

ON_DATA: tuple[Conclusion, ...] = ()
