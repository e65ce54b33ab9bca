// Package portal speaks to the portals of a Linux desktop
// (org.freedesktop.portal.Desktop on the session bus) for the display, in
// step 5: pictures, shared screens, mouse and keyboard, a global key. Under
// Wayland they are the only way that every desktop has; the system, not this
// program, asks the person there, and may say no.
package portal
