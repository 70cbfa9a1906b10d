# SPDX-License-Identifier: Apache-2.0
"""Light and dark colors of whole pages: as the reader's system asks, until a button of the page chooses."""

# The button is no use without the script, which shows it.
BUTTON = '<button type="button" id="theme" hidden>Dark colors</button>'
SCRIPT = """{
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light colors" : "Dark colors"; };
  const changed = () => { name(); dispatchEvent(new Event("colors")); };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; changed(); });
  system.addEventListener("change", changed);
  button.hidden = false;
  name();
}
"""


def palettes(light: dict[str, str], dark: dict[str, str]) -> str:
    """CSS that sets the custom property `--tq-ROLE` of each role of the palettes."""

    def rule(palette: dict[str, str], scheme: str) -> str:
        return f"{{ color-scheme: {scheme}; {' '.join(f'--tq-{role}: {color};' for role, color in palette.items())} }}"

    system = f':root:not([data-theme="light"]) {rule(dark, "dark")}'
    chosen = f':root[data-theme="dark"] {rule(dark, "dark")}'
    return f":root {rule(light, 'light')}\n@media (prefers-color-scheme: dark) {{ {system} }}\n{chosen}"
