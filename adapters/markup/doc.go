// Package markup turns the Markdown a model writes into what a chat platform
// can show, and cuts it into messages that fit.
//
// There is one intermediate form, [Text]: plain text and spans over it, in
// UTF-16 units. Telegram takes it as it is (text and entities, so nothing can
// fail with "can't parse entities"); for Discord the spans are written back as
// Discord's own Markdown, after the cut, so that no piece ends inside a fence
// or between two asterisks.
//
//	Parse, ParsePartial   Markdown -> Text     (finished answer, growing answer)
//	Split                 Text -> []Text       (each within a limit)
//	DiscordMarkdown       Markdown -> []string (each within a limit)
//
// Nothing a model wrote is dropped: raw HTML, links of unknown schemes and
// unused reference definitions are shown as they were written.
//
// Every function is pure: safe from any goroutine, no goroutines of its own,
// pieces are returned in reading order.
package markup
