# An independent program that takes text: what its field has is written to the
# file named first, whole, at every change. The layout is the display's.
import os, sys
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk

def changed(buffer):
    start, end = buffer.get_bounds()
    with open(sys.argv[1] + ".new", "w", encoding="utf-8", newline="") as f:
        f.write(buffer.get_text(start, end, True))
    os.rename(sys.argv[1] + ".new", sys.argv[1])

window = Gtk.Window(title="gtk entry")
window.set_default_size(500, 300)
view = Gtk.TextView()
view.get_buffer().connect("changed", changed)
window.add(view)
window.connect("destroy", Gtk.main_quit)
window.show_all()
view.grab_focus()
Gtk.main()
