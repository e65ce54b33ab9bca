#!/bin/sh
# Renders the drawings in this folder to the pictures that are embedded.
# Needs rsvg-convert (librsvg2-bin). A tray picture is 48 pixels: it divides
# evenly to 16 and to 24, and serves a panel of double density as it is.
set -eu
cd "$(dirname "$0")"
for s in tray-*.svg; do
	rsvg-convert -w 48 -h 48 -o "${s%.svg}.png" "$s"
done
rsvg-convert -w 512 -h 512 -o app.png app.svg
