// Keeps the page up to date: a stream says when there is something new; without one, the page looks every 15 seconds.
(() => {
  const live = () => document.getElementById("live");
  const pulse = document.getElementById("pulse");
  if (!live() || !live().hasAttribute("hx-get") || !window.htmx) return;
  const POLL = 15000;
  let stream = null;
  let polling = 0;
  let again = 0;
  let late = false;
  let open = [];

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
    open = [...live().querySelectorAll("details[open][id]")].map((details) => details.id);
    htmx.trigger(document.body, "overspill-look");
  };
  document.body.addEventListener("htmx:after:swap", () => {
    open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    open = [];
  });
  const tellPace = () => {
    if (stream?.readyState === EventSource.OPEN) tell("Live", "live");
    else tell("Not live: looking every 15 s", "poll");
  };
  // An error takes the place of nothing (`noSwap`), and one that says when to come again is followed. The login page
  // is no news of the fleet either: loaded anew, the page leads there and back.
  document.body.addEventListener("htmx:after:request", (event) => {
    const { raw, status, headers } = event.detail.ctx.response;
    if (raw.redirected) {
      event.preventDefault();
      return location.reload();
    }
    if (status < 400) return tellPace();
    tell(`Not up to date: the last look was answered with ${status}`, "poll");
    const seconds = Number(headers.get("Retry-After"));
    clearTimeout(again);
    if (seconds) again = setTimeout(look, 1000 * seconds * (1 + Math.random()));
  });
  const poll = () => {
    if (!polling) polling = setInterval(look, POLL);
    tellPace();
  };
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
      tellPace();
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
