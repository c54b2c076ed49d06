# A static binary in an image that holds nothing else but what the terminal
# tool needs. It runs as uid 65532 and writes only below /data.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /gateway ./cmd/gateway

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 65532 --no-create-home --home-dir /data gateway && mkdir -p /data/workspace && chown -R 65532:65532 /data
COPY --from=build /gateway /usr/local/bin/gateway
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/gateway"]
