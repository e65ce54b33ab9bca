//go:build cgo

package display

func newWin32Input(a around) (input, error) {
	w, err := newWin32Watch()
	if err != nil {
		return nil, err
	}
	return newActor(a, &robotMover{own: win32Own{}}, w), nil
}
