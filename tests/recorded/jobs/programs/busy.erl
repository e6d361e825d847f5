%% One process counts words for two that ask it: they wait for its mailbox.
-module(busy).
-export([main/0, ask/1]).

count_words(Text) -> length(string:lexemes(Text, " ")).

serve(Text) ->
    receive
        {From, Number} ->
            From ! {Number, count_words(Text)},
            serve(Text)
    end.

ask(Server) ->
    Server ! {self(), 1},
    receive
        {1, _} -> ask(Server)
    end.

main() ->
    Text = lists:flatten(lists:duplicate(2000, "some words ")),
    Server = spawn(fun() -> serve(Text) end),
    spawn(busy, ask, [Server]),
    spawn(busy, ask, [Server]),
    timer:sleep(500),
    io:format("ready~n").
