# Completion of odf for fish:
#   odf completion fish > ~/.config/fish/completions/odf.fish

function __odf_complete
    set -l words (commandline -opc)
    set -l unfinished (commandline -ct)
    set -l found (_ODF_COMPLETE=fish command $words[1] $words[2..-1] "$unfinished" 2>/dev/null)
    if test "$found[1]" = words
        printf '%s\n' $found[2..-1]
    else
        __fish_complete_path "$unfinished"
    end
end

complete --command odf --no-files --arguments '(__odf_complete)'
