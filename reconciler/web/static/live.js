// Keeps the page up to date: a stream says when there is something new; without one, the page looks every 15 seconds.
(() => {
  const live = () => document.getElementById("live");
  const pulse = document.getElementById("pulse");
  if (!live() || !live().hasAttribute("hx-get") || !window.htmx) return;
  const POLL = 15000;
  let polling = 0;
  let late = false;

  const tell = (words, state) => {
    if (pulse.textContent !== words) pulse.textContent = words;
    pulse.dataset.state = state;
  };
  const isBusy = () => {
    const focused = document.activeElement;
    return focused && live().contains(focused) && focused.matches("input, select, textarea");
  };
  const look = () => {
    if (document.hidden || isBusy()) {
      late = true;
      return;
    }
    late = false;
    const open = [...live().querySelectorAll("details[open][id]")].map((details) => details.id);
    const restore = () => {
      open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
      document.body.removeEventListener("htmx:after:swap", restore);
    };
    document.body.addEventListener("htmx:after:swap", restore);
    htmx.trigger(document.body, "overspill-look");
  };
  const poll = () => {
    if (!polling) polling = setInterval(look, POLL);
    tell("Not live: looking every 15 s", "poll");
  };
  const listen = () => {
    if (!window.EventSource) return poll();
    const stream = new EventSource("/events");
    stream.addEventListener("open", () => {
      clearInterval(polling);
      polling = 0;
      tell("Live", "live");
    });
    stream.addEventListener("look", look);
    stream.addEventListener("over", () => {
      stream.close();
      location.reload();
    });
    stream.addEventListener("error", () => {
      poll();
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 2 * POLL);
    });
    addEventListener("pagehide", () => stream.close(), { once: true });
  };
  document.addEventListener("visibilitychange", () => late && look());
  document.addEventListener("focusout", () => late && setTimeout(() => late && look(), 200));
  listen();
})();
