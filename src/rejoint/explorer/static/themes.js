// Light, dark, or as the system has it.

const NAMES = { system: "System", light: "Light", dark: "Dark" };

export function switchTheme(button) {
  const root = document.documentElement;
  const show = () => {
    const name = root.dataset.theme ?? "system";
    button.textContent = `Theme: ${NAMES[name]}`;
  };
  button.addEventListener("click", () => {
    const order = Object.keys(NAMES);
    const next = order[(order.indexOf(root.dataset.theme ?? "system") + 1) % order.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("rejoint-theme", next);
    } catch {
      // Kept for this page only.
    }
    show();
  });
  show();
}
