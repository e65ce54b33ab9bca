package computer

import (
	"context"
	"slices"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// process is a program that runs, as the system lists it.
type process struct {
	pid        int
	name, path string
}

// apps lists the programs that run: those with windows, and with Include-
// Background the person's others.
func (c *Computer) apps(ctx context.Context, s *session, p *wire.Apps) (job, error) {
	if _, err := c.able(ctx, hands.AbilityWindows); err != nil {
		return job{}, err
	}
	return c.list(ctx, s, "List programs", p.IncludeBackground, func(ctx context.Context, _ space.Layout) (wire.Type, wire.Payload, string, error) {
		stack, err := c.o.Hands.Windows(ctx)
		if err != nil {
			return "", nil, "", err
		}
		r := &wire.AppsResponse{Apps: []wire.App{}}
		at := map[int]int{}
		for _, w := range stack {
			if w.Ours || w.Popup || w.PID <= 0 {
				continue
			}
			i, known := at[w.PID]
			if !known {
				i = len(r.Apps)
				at[w.PID] = i
				app := wire.App{PID: w.PID, Name: clipped(w.App, wire.MaxText)}
				if pr, ok := lookAt(w.PID); ok {
					app.ExecutablePath = pr.path
					if app.Name == "" {
						app.Name = pr.name
					}
				}
				r.Apps = append(r.Apps, app)
			}
			r.Apps[i].WindowCount++
			r.Apps[i].IsFrontmost = r.Apps[i].IsFrontmost || w.Focused
		}
		if p.IncludeBackground {
			for _, pr := range processes() {
				if _, known := at[pr.pid]; !known {
					r.Apps = append(r.Apps, wire.App{PID: pr.pid, Name: clipped(pr.name, wire.MaxText), ExecutablePath: pr.path})
				}
			}
		}
		r.Apps = slices.Clip(r.Apps[:min(len(r.Apps), wire.MaxListEntries)])
		return wire.TypeAppsResponse, r, counted(len(r.Apps), "program"), nil
	})
}
