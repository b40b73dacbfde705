// What the page remembers in this browser. A browser that keeps nothing is no reason to fail.

/** Return what was kept under a name, or the value to begin with. */
export function remembered(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep a value under a name. */
export function remember(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // The page works the same; it only begins anew the next time.
  }
}
