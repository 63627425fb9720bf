"""Pictures of the explorer for README and docs: ``make screenshots``.

Asia and the town's tables come with the package; the survey (Adult) and the movies (MovieLens) are
read as ``rejoint.datasets`` finds them, and their pictures are left as they are where it does not.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "_static"
MOST_BYTES = 200_000


class Shot(NamedTuple):
    """One picture: its name, the state of the page as in a link, its size and theme."""

    name: str
    link: str
    width: int = 1280
    height: int = 640
    theme: str = "light"


ASIA = [
    Shot("explorer-asia", "#is.smoke=yes&is.dysp=yes", 1440, 480),
    Shot("explorer-target", "#is.smoke=yes&is.dysp=yes&view=target&target=lung", 1000, 700),
]
YOUTH = [Shot("explorer-youth", "#is.gender=female&is.active=0&sort=change", 1280, 640)]
TOWN = [Shot("explorer-town", "#is.Pass=Student", 1280, 740)]
DEMO = [
    Shot("explorer-ask", "#is.asia=yes&is.xray=yes&view=ask&ask=P(lung | smoke = yes)", 1000, 560)
]
SURVEY = [
    Shot("explorer-survey", "#is.education=Masters&not.sex=Female&sort=change", 1400, 700, "dark"),
    Shot("explorer-record", "#view=record&record=12", 900, 800),
    Shot("explorer-phone", "#is.education=Masters&sort=change", 390, 780),
]
MOVIES = [Shot("explorer-ratings", "#view=ratings&is.Matrix%2C+The+%281999%29=5", 1280, 820)]


def asia() -> Any:
    """The Asia network with records of it."""
    import rejoint as rj
    from rejoint.explorer.open import Opened

    pmf = rj.datasets.asia()
    records = rj.datasets.remove_cells(pmf.sample(5_000, random_state=0), 0.1, random_state=0)
    return Opened(pmf, Path("asia.rejoint"), "Asia", records=records)


def youth() -> Any:
    """The model of README and the quickstart."""
    import rejoint as rj
    from rejoint.explorer.open import Opened

    result = rj.estimate(rj.datasets.youth_survey(), random_state=0)
    return Opened(result.pmf, Path("survey.rejoint"), "Youth survey", story=result.stop)


def town() -> Any:
    """A model of six published tables of an invented town."""
    import rejoint as rj
    from rejoint.explorer.open import Opened

    result = rj.factorize(rj.Marginals.read(rj.datasets.town_tables()))
    return Opened(result.pmf, Path("town.rejoint"), "Town", story=result.choice)


def demo() -> Any:
    """A model fitted to records of Asia, with posterior draws."""
    from rejoint.explorer.open import open_demo

    return open_demo()


def survey() -> Any:
    """A model of 8,000 people of the Adult data, with posterior draws."""
    import rejoint as rj
    from rejoint.explorer.open import Opened

    people = rj.datasets.adult(backend="pandas").iloc[:8_000]
    records = rj.Records.of(people.drop(columns=["fnlwgt", "education-num", "split"]))
    result = rj.estimate(records, rank=8, solver="bayes", random_state=0)
    path = Path("adult.rejoint")
    return Opened(result.pmf, path, "Adult", records=records, story=result.stop)


def movies() -> Any:
    """A model of the ratings of 20 action movies."""
    import rejoint as rj
    from rejoint.explorer.open import Opened

    ratings = rj.datasets.movielens("action_top20", whole_stars=True, backend="pandas")
    table = rj.datasets.movielens("pool_movies", backend="pandas")
    titles = dict(zip(table["movieId"].astype(str), table["title"], strict=True))
    ratings = ratings.drop(columns="userId").rename(columns=titles)
    records = rj.Records.of(ratings, kinds=dict.fromkeys(ratings.columns, "ordinal"))
    pmf = rj.estimate(records, rank=8, solver="ml", n_init=2, random_state=0).pmf
    return Opened(pmf, Path("action.rejoint"), "Action movies")


def take(browser: Any, opened: Callable[[], Any], shots: list[Shot], say: Any) -> None:
    """Write the pictures of one page."""
    from rejoint.datasets import FetchError
    from rejoint.explorer import write_page

    try:
        document = opened().document()
    except FetchError as error:
        say(f"left as they are: {', '.join(shot.name for shot in shots)} ({error})")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        write_page(page, document)
        for shot in shots:
            size = {"width": shot.width, "height": shot.height}
            tab = browser.new_page(viewport=size, color_scheme=shot.theme, reduced_motion="reduce")
            tab.goto(page.as_uri() + shot.link)
            tab.wait_for_timeout(300)  # cards are measured and dealt
            path = FOLDER / f"{shot.name}.png"
            tab.screenshot(path=path)
            tab.close()
            say(f"{path.name}: {path.stat().st_size:,} bytes")
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(
                    f"{path.name} is larger than {MOST_BYTES:,} bytes: make it smaller."
                )


#: Pictures that the code of a page draws, by the names it saves them under.
DRAWN = {
    "start/quickstart.rst": {"sleep.png": "quickstart-sleep.png"},
    "tutorials/latent-classes.rst": {"classes.png": "tutorial-classes.png"},
}


def draw(say: Any) -> None:
    """Run the code of pages that draw, and keep the pictures."""
    import contextlib

    os.environ["MPLBACKEND"] = "Agg"
    sys.path.insert(0, str(FOLDER.parents[1] / "tests"))
    import snippets

    for page, pictures in DRAWN.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            snippets.run(FOLDER.parent / page)
            for drawn, name in pictures.items():
                shutil.copy(drawn, FOLDER / name)
                say(f"{name}: {(FOLDER / name).stat().st_size:,} bytes")


def main() -> None:
    """Write all pictures."""
    import warnings

    import click
    from playwright.sync_api import sync_playwright

    warnings.simplefilter("ignore")  # remarks on the data, which the pictures do not show
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        pages = [
            (asia, ASIA),
            (youth, YOUTH),
            (town, TOWN),
            (demo, DEMO),
            (survey, SURVEY),
            (movies, MOVIES),
        ]
        for opened, shots in pages:
            take(browser, opened, shots, click.echo)
        browser.close()
    draw(click.echo)


if __name__ == "__main__":
    main()
