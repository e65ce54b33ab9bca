package display

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>

// What is used of libxkbcommon. Every Wayland desktop has it, but the headers
// need not be there to build, nor the library to run elsewhere.
typedef void *(*context_new_fn)(int flags);
typedef void *(*keymap_new_fn)(void *context, const char *text, int format, int flags);
typedef void (*unref_fn)(void *);
typedef uint32_t (*keymap_count_fn)(void *keymap);
typedef uint32_t (*key_count_fn)(void *keymap, uint32_t key);
typedef uint32_t (*level_count_fn)(void *keymap, uint32_t key, uint32_t layout);
typedef int (*key_syms_fn)(void *keymap, uint32_t key, uint32_t layout, uint32_t level, const uint32_t **out);

// Desktops press what is on a key alone, with Shift, and with AltGr, but nothing
// that needs more than one of those.
#define LEVELS 3

// localpc_layouts writes pairs of layout and keysym to out, at most max of them;
// returns how many, or -1 where that can't be known.
static int localpc_layouts(const char *text, uint32_t *out, int max) {
	void *lib = dlopen("libxkbcommon.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib) return -1;
	context_new_fn context_new = (context_new_fn)dlsym(lib, "xkb_context_new");
	unref_fn context_unref = (unref_fn)dlsym(lib, "xkb_context_unref");
	keymap_new_fn keymap_new = (keymap_new_fn)dlsym(lib, "xkb_keymap_new_from_string");
	unref_fn keymap_unref = (unref_fn)dlsym(lib, "xkb_keymap_unref");
	keymap_count_fn min_key = (keymap_count_fn)dlsym(lib, "xkb_keymap_min_keycode");
	keymap_count_fn max_key = (keymap_count_fn)dlsym(lib, "xkb_keymap_max_keycode");
	keymap_count_fn layouts = (keymap_count_fn)dlsym(lib, "xkb_keymap_num_layouts");
	key_count_fn key_layouts = (key_count_fn)dlsym(lib, "xkb_keymap_num_layouts_for_key");
	level_count_fn levels = (level_count_fn)dlsym(lib, "xkb_keymap_num_levels_for_key");
	key_syms_fn syms = (key_syms_fn)dlsym(lib, "xkb_keymap_key_get_syms_by_level");
	int n = -1;
	void *context = 0, *keymap = 0;
	if (context_new && context_unref && keymap_new && keymap_unref && min_key && max_key && layouts && key_layouts && levels && syms)
		context = context_new(1 | 2); // none of the person's files, nothing of the environment
	if (context) keymap = keymap_new(context, text, 1, 0);
	if (keymap) {
		n = 0;
		uint32_t all = layouts(keymap), last = max_key(keymap);
		for (uint32_t key = min_key(keymap); key <= last && key < 0x10000; key++) {
			uint32_t has = key_layouts(keymap, key);
			// A key with fewer layouts than there are is the same in the others.
			for (uint32_t l = 0; has > 0 && l < all; l++) {
				for (uint32_t v = 0; v < LEVELS && v < levels(keymap, key, l % has); v++) {
					const uint32_t *got;
					int count = syms(keymap, key, l % has, v, &got);
					if (count == 1 && n < max) {
						out[2*n] = l;
						out[2*n+1] = got[0];
						n++;
					}
				}
			}
		}
		keymap_unref(keymap);
	}
	if (context) context_unref(context);
	dlclose(lib);
	return n;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// layoutsOf is which keysyms each layout of a keymap has, in the text form of
// xkb. An error where that can't be known.
func layoutsOf(text string) ([]map[keysym]bool, error) {
	const most = 1 << 16
	b := append([]byte(text), 0)
	pairs := make([]uint32, 2*most)
	n := int(C.localpc_layouts((*C.char)(unsafe.Pointer(&b[0])), (*C.uint32_t)(unsafe.Pointer(&pairs[0])), most))
	if n <= 0 {
		return nil, errors.New("the keyboard's layout can't be read")
	}
	var out []map[keysym]bool
	for i := range n {
		layout, sym := int(pairs[2*i]), pairs[2*i+1]
		for len(out) <= layout {
			out = append(out, map[keysym]bool{})
		}
		out[layout][sym] = true
	}
	return out, nil
}
