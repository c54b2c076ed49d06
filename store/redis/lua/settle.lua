#!lua
-- settle: sets fates that only tell of something. Not fenced; a fate that is held, final or at a later stage stays.
-- KEYS, ARGV 1-4: prelude. ARGV: · fates
-- Reply: {OK}
local sets = fates()
if exists then
  local stage = {accepted = 0, queued = 1, pending = 1, held = 9, running = 2, attached = 2, steered = 3}
  for _, f in ipairs(sets) do
    local raw = call('HGET', key('f'), f[1])
    local to = f[2] == 'held' and 1 or stage[f[2]] or 4
    if raw and (stage[unpk(raw)[1]] or 4) <= to then fate(f[1], f[2], f[3], f[4]) end
  end
end
return {'OK'}
