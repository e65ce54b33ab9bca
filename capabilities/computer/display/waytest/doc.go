// Package waytest starts a Wayland desktop for tests of the display (step 5):
// sway without a screen of its own, as a person who is not root, with the
// portals of sway and GTK, PipeWire where it is wanted, on a session bus of its
// own. Everything ends with the test.
package waytest
