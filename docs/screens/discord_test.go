package screens

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"coxswain/adapters/discord"
	"coxswain/discordtest"
	"coxswain/session"
	"coxswain/store/storetest"
)

const (
	annID   = "7001000000000000001"
	channel = "8002000000000000002"
	guild   = "9001000000000000001"
	bot     = "<@" + discordtest.BotID + ">"
)

// A discordNet is a channel in which Ann mentions the bot, over real sockets.
type discordNet struct {
	t   *testing.T
	api *discordtest.Server
	ctx context.Context
}

// onDiscord plays the story on Discord.
func onDiscord(t *testing.T) (middle, end []message, api *discordtest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := &discordNet{t: t, api: discordtest.New(), ctx: ctx}
	n.api.AddUser(discordtest.User{ID: annID, Username: "ann", GlobalName: "Ann"})
	n.api.AddChannel(discordtest.Channel{ID: channel, Guild: guild, Name: "reports"})
	url, down := n.api.Start()
	defer down()
	b := newBox()
	var a *discord.Adapter
	stop := gateway(t, b, discord.Name, func(hub *session.Hub, st *storetest.Model) adapter {
		var err error
		a, err = discord.New(discord.Options{
			Token: func() string { return discordtest.Token }, APIURL: url, Door: hub, Docs: st, Save: noFile, RequireMention: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	})
	defer stop()
	n.until("connected", func() bool { return a.Status().Connected })
	middle, end = play(t, n, b)
	return middle, end, n.api
}

func (n *discordNet) say(text string) string { return n.api.Say(channel, annID, bot+" "+text) }

// pass does nothing: this time is real, and is not waited for.
func (n *discordNet) pass(time.Duration) {}

func (n *discordNet) until(what string, cond func() bool) {
	n.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // calls are not all that changes
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			n.t.Fatalf("%s: never; the channel is %+v", what, n.chat())
		}
	}
}

func (n *discordNet) chat() []message {
	var out []message
	replies := map[string]string{}
	for _, m := range n.api.Messages(channel) {
		d := message{ID: m.ID, Name: m.Author.GlobalName, Text: m.Content, HTML: markdown(m.Content), Edited: m.Edits > 0, Signs: slices.Sorted(maps.Keys(m.Reactions))}
		if m.Author.ID == discordtest.BotID {
			d.Name = "Coxswain"
		}
		var rows []struct {
			Components []struct{ Label string }
		}
		if len(m.Components) > 0 {
			if err := json.Unmarshal(m.Components, &rows); err != nil {
				n.t.Errorf("components %s: %v", m.Components, err)
			}
		}
		for _, row := range rows {
			var labels []string
			for _, b := range row.Components {
				labels = append(labels, b.Label)
			}
			d.Buttons = append(d.Buttons, labels)
		}
		replies[d.ID] = m.ReplyTo
		out = append(out, d)
	}
	return linked(out, replies)
}
