# The base by its digest, since a tag can be moved. `docker buildx imagetools inspect` names the newest of a tag.
ARG PYTHON=python:3.13-slim-bookworm@sha256:01f42367a0a94ad4bc17111776fd66e3500c1d87c15bbd6055b7371d39c124fb

# 1. The wheel, and everything that it needs, in an environment of its own. `make requirements` wrote the hashes.
FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY . .
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --requirement requirements/build.txt \
 && /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /opt/wheels . \
 && python -m venv --without-pip /opt/overspill \
 && /opt/build/bin/pip --python /opt/overspill install --require-hashes --requirement requirements/image.txt \
 && /opt/build/bin/pip --python /opt/overspill install --no-deps /opt/wheels/*.whl \
 && python requirements/trim_kubernetes.py /opt/overspill/lib/python3.*/site-packages

# 2. Git, ssh, that environment, and a user who owns nothing but the cache.
FROM ${PYTHON}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 overspill \
 && useradd --uid 10001 --gid 10001 --home-dir /cache --no-create-home --shell /usr/sbin/nologin overspill \
 && install --directory --owner 10001 --group 10001 --mode 0700 /cache
COPY --from=build /opt/overspill /opt/overspill

# The root may be read-only: the mirror of the fleet repository in /cache is all that is written, beside /tmp.
ENV PATH=/opt/overspill/bin:$PATH \
    HOME=/cache \
    OVERSPILL_CACHE_DIR=/cache/overspill \
    OVERSPILL_LISTEN=:8080 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
VOLUME /cache
EXPOSE 8080
USER 10001:10001
WORKDIR /cache

# Asks the daemon itself; a remote that is away does not make it unhealthy. Another OVERSPILL_LISTEN is followed, and TLS:
# the certificate is made for another name than this machine's, so it is not looked at.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, ssl, urllib.request as r; r.build_opener(r.ProxyHandler({}), r.HTTPSHandler(context=ssl._create_unverified_context())).open(('https://127.0.0.1:' if os.environ.get('OVERSPILL_TLS_CERT_FILE') else 'http://127.0.0.1:') + os.environ['OVERSPILL_LISTEN'].rpartition(':')[2] + '/healthz', timeout=4)"]
# The pass under way is finished first: give it 90 seconds (docker stop --time 90).
STOPSIGNAL SIGTERM
ENTRYPOINT ["overspill"]
CMD ["run"]
