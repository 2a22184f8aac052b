// A link such as /login#token=ovs_... fills the form in and sends it; what follows # never leaves the browser by itself.
(() => {
  const take = () => {
    const match = /^#token=(ovs_[A-Za-z0-9_-]+)$/.exec(location.hash);
    if (!match) return;
    history.replaceState(null, "", location.pathname + location.search);
    document.getElementById("token").value = match[1];
    document.getElementById("by-token").requestSubmit();
  };
  addEventListener("hashchange", take);
  take();
})();
