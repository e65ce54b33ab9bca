package computer

import (
	"context"
	"slices"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
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
	j, err := c.list(ctx, s, "List programs", p.IncludeBackground, func(ctx context.Context, l space.Layout, reach func(string) bool) (wire.Type, wire.Payload, string, error) {
		stack, err := c.o.Hands.Windows(ctx)
		if err != nil {
			return "", nil, "", err
		}
		r := &wire.AppsResponse{Apps: []wire.App{}}
		at := map[int]int{}
		for _, w := range stack {
			on := touching(l, w.Frame)
			if w.Ours || w.Popup || w.PID <= 0 || len(on) > 0 && !slices.ContainsFunc(on, reach) {
				continue
			}
			i, known := at[w.PID]
			if !known {
				i = len(r.Apps)
				at[w.PID] = i
				app := wire.App{PID: w.PID, Name: told(w.App, wire.MaxText)}
				if pr, ok := lookAt(w.PID); ok {
					app.ExecutablePath = told(pr.path, wire.MaxPath)
					if app.Name == "" {
						app.Name = told(pr.name, wire.MaxText)
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
					r.Apps = append(r.Apps, wire.App{PID: pr.pid, Name: told(pr.name, wire.MaxText), ExecutablePath: told(pr.path, wire.MaxPath)})
				}
			}
		}
		r.Apps = slices.Clip(r.Apps[:min(len(r.Apps), wire.MaxListEntries)])
		return wire.TypeAppsResponse, r, counted(len(r.Apps), "program"), nil
	})
	if err == nil && p.IncludeBackground {
		// What runs unseen is more than what is on the screens.
		j.d.Title, j.d.Exact, j.d.Sentence = "List all programs that run", "list all programs that run", "%s wants to see the screen, and which programs run unseen."
		j.d.Effects = append(j.d.Effects, consent.Effect{Kind: consent.EffectRead, Text: "learns which programs run, also those without a window"})
	}
	return j, err
}
