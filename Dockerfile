# Firmline with all its compilers and simulators, for machines without Debian's packages:
#     docker build -t firmline .
#     docker run --rm -v "$PWD/build:/firmline/build" firmline doit run recipe=kws_rvp
# RISC-V targets need --platform linux/amd64 with both commands (Spike).
FROM debian:12
WORKDIR /firmline
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv
# What changes rarely comes first, so that a change of the code installs nothing again.
COPY bootstrap constraints.txt pyproject.toml ./
RUN ./bootstrap --with riscv true
COPY . .
# Exit code 3: something is missing, as Spike is on linux/arm64.
RUN ./bootstrap doit doctor --install || [ $? -eq 3 ]
ENTRYPOINT ["./bootstrap"]
CMD ["doit", "list"]
