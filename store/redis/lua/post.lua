#!lua
-- post: what a command did beside the turn: preferences, title, jobs, parts to send.
-- KEYS, ARGV 1-4: prelude. ARGV: dedupe hasprefs prefs title · jobs · jobs added · outs
-- Reply: {OK, dup, lane}
local dedupe, hasprefs, prefs, title, js, add, parts = str(), num(), str(), str(), jobs(), jobs(), outs()

local seen = marked(dedupe)
if seen then return {'OK', seen.fresh and 0 or 1, view()} end
make()
if hasprefs == 1 then set('prefs', prefs) end
if title ~= '' then set('title', title) end
put_jobs(js, true)
for _, j in ipairs(add) do
  if call('HEXISTS', key('j'), j[1]) == 0 then put_jobs({j}, false) end
end
plan(parts)
mark(dedupe, 0, 0, 'OK')
save(true)
return {'OK', 0, view()}
