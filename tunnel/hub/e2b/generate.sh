#!/bin/sh
# Makes *.pb.go and *.connect.go from the .proto files beside them. The plugins'
# versions are those of the modules in go.mod; protoc comes with the system
# (protobuf-compiler).
set -eu
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go
for name in process filesystem; do
	PATH="$bin:$PATH" protoc -I "$name" \
		--go_out="$name" --go_opt=paths=source_relative \
		--connect-go_out="$name" --connect-go_opt=paths=source_relative,package_suffix=,simple \
		"$name/$name.proto"
done
