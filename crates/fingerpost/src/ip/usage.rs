//! What is said to who asks for help or says too little: our own words, for
//! it lists what is built here. Called by [`super`].

use super::Tool;

/// Of the whole command.
pub fn of_tool(tool: Tool) -> String {
    match tool {
        Tool::Ip => "\
Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }
       ip [ -force ] -batch FILE
where  OBJECT := { address | link | monitor | neighbour | netns | nexthop | route | rule }
       OPTIONS := { -4 | -6 | -0 | -f FAMILY | -b[atch] FILE | -force | -n[etns] NAME |
                    -a[ll] | -br[ief] | -o[neline] | -d[etails] | -s[tatistics] |
                    -j[son] | -p[retty] | -N[umeric] | -t[imestamp] | -ts | -V }
This is Fingerpost, called by the name of ip. Other objects and words are refused by
name, or handed to the program that `fallback` names in [ip] of its configuration."
            .to_owned(),
        Tool::Bridge => "\
Usage: bridge [ OPTIONS ] OBJECT { COMMAND | help }
       bridge [ -force ] -batch FILE
where  OBJECT := { fdb | link }
       OPTIONS := { -b[atch] FILE | -force | -n[etns] NAME | -o[neline] |
                    -d[etails] | -s[tatistics] | -j[son] | -p[retty] | -V }
This is Fingerpost, called by the name of bridge. Other objects and words are refused
by name, or handed to the program that `fallback` names in [ip] of its configuration."
            .to_owned(),
    }
}

/// Of an object.
pub fn of_object(object: &str, commands: &str) -> String {
    format!(
        "Usage: {object} {{ {commands} }}\n\
         The words are those of ip(8); what is not built here is refused by name."
    )
}
