# The program tandem on a bare Debian, CPU only:
#   docker build -t tandem .                                   builds the package in a first stage
#   docker run --rm -v "$PWD:/data" -w /data tandem train digits
# With CUDA, build on NVIDIA's images; cuBLAS and cuDNN are opened at run time:
#   docker build -t tandem --build-arg BUILD=nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04 \
#     --build-arg RUN=nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04 .
#   docker run --rm --gpus all -v "$PWD:/data" -w /data tandem devices
ARG BUILD=debian:12
ARG RUN=debian:12-slim

FROM ${BUILD} AS build
COPY . /src
WORKDIR /src
RUN scripts/install-dependencies build \
 && cmake --preset package \
 && cmake --build --preset package --parallel "$(nproc)"

FROM ${RUN}
COPY --from=build /src/build/package/*.deb /tmp/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /tmp/*.deb ca-certificates libcurl4 \
 && rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENTRYPOINT ["tandem"]
CMD ["--help"]
