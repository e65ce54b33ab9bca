// Package wl is as much of a Wayland client as the display needs, in step 5:
// which screens there are and where they lie, and, where the compositor lets
// every program have them (sway, Hyprland, Wayfire, labwc and others built on
// wlroots), pictures, a pointer and a keyboard of its own. Others have those
// behind the portals only.
package wl
