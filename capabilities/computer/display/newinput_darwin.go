//go:build cgo

package display

func newQuartzInput(a around, q *quartz) (input, error) {
	return newActor(a, &robotMover{own: &quartzOwn{quartz: q}}, noWatch{}), nil
}
