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
  let stream = null;
  const hush = () => {
    stream?.close();
    stream = null;
  };
  // A browser opens six connections to a host: pages that nobody looks at hold none of them.
  const listen = () => {
    if (stream || document.hidden) return;
    if (!window.EventSource) return poll();
    stream = new EventSource("/events");
    const mine = stream;
    mine.addEventListener("open", () => {
      clearInterval(polling);
      polling = 0;
      tell("Live", "live");
    });
    mine.addEventListener("look", look);
    mine.addEventListener("over", () => {
      hush();
      location.reload();
    });
    mine.addEventListener("error", () => {
      poll();
      if (mine.readyState !== EventSource.CLOSED || mine !== stream) return;
      stream = null;
      setTimeout(listen, 2 * POLL);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return hush();
    look();
    listen();
  });
  document.addEventListener("focusout", () => late && setTimeout(() => late && look(), 200));
  addEventListener("pagehide", hush);
  addEventListener("pageshow", listen);
  listen();
})();
