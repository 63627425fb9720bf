// Runs before the first paint: a theme that was chosen by hand must not flash in later.
(() => {
  try {
    const chosen = localStorage.getItem("rejoint-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage (a file, a private window): the system's theme is used.
  }
})();
