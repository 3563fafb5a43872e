"use strict";

// Runs before the first paint, so that a page never flashes in the other theme. The choice is kept
// in the browser; the cookie tells the server, which serves reports that run no script of ours.
(function () {
  const themes = ["auto", "light", "dark"];
  const said = {auto: "as the system", light: "light", dark: "dark"};

  function kept() {
    try {
      const value = localStorage.getItem("attnscope-theme");
      return themes.includes(value) ? value : "auto";
    } catch {
      return "auto";
    }
  }

  function wear(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.cookie = `attnscope-theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = {auto: "◐", light: "☀", dark: "☾"}[theme];
      button.title = `Theme: ${said[theme]}`;
      button.setAttribute("aria-label", `Theme: ${said[theme]}. Press to change.`);
    }
    document.dispatchEvent(new CustomEvent("attnscope-theme"));
  }

  wear(kept());
  document.addEventListener("DOMContentLoaded", () => {
    wear(kept());
    document.getElementById("theme").addEventListener("click", () => {
      const next = themes[(themes.indexOf(kept()) + 1) % themes.length];
      try { localStorage.setItem("attnscope-theme", next); } catch { /* private window */ }
      wear(next);
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => wear(kept()));
})();
