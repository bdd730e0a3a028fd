//! What the keys of `[snmp]` are for. Shown by the program, which also makes
//! the configuration's manual of it.

use crate::setting::{Section, Setting, Without};

/// What the keys are for.
pub const SECTIONS: &[Section] = &[
    Section {
        head: "[snmp]",
        about: "The tables over SNMP, read-only.",
        settings: SETTINGS,
    },
    Section {
        head: "[[snmp.community]]",
        about: "A community of versions 1 and 2c. Those that are said stand in the place of \
                `public`, which is answered to this host only; 1000 at most.",
        settings: COMMUNITY,
    },
    Section {
        head: "[[snmp.user]]",
        about: "What a user of version 3 may do. `fingerpost snmp user add` makes the keys; a \
                user with keys and without a section may ask for everything, with all the \
                protection that the keys allow.",
        settings: USER,
    },
    Section {
        head: "[snmp.view]",
        about: "Views by names of your own; `all` is there already.",
        settings: VIEW,
    },
    Section {
        head: "[[snmp.target]]",
        about: "Somebody who is told of linkUp, linkDown and starts; 1000 at most.",
        settings: TARGET,
    },
];

const SETTINGS: &[Setting] = &[
    Setting::usual(
        "listen",
        "[\"127.0.0.1:1161\"]",
        "UDP addresses to listen at, 16 at most; none: []. Ports below 1024 need root.",
    ),
    Setting::new(
        "agentx",
        Without::Words("no master is looked for"),
        "\"/var/agentx/master\"",
        "The AgentX master to be a subagent of: the path of its socket, or an address as \
         \"tcp:127.0.0.1:705\".",
    ),
    Setting::new(
        "agentx_master",
        Without::Words("no subagent may attach"),
        "\"/run/fingerpost/agentx\"",
        "The Unix socket, an absolute path, that AgentX subagents attach to: FRR, keepalived, \
         lldpd.",
    ),
    Setting::new(
        "agentx_master_group",
        Without::Words("the daemon's own user, and root"),
        "\"frr\"",
        "The group that may attach, by name or number.",
    ),
    Setting::usual(
        "agentx_master_timeout_ms",
        "1000",
        "Milliseconds that a subagent may take for an answer, where it does not say so itself; \
         100 to 10000.",
    ),
    Setting::new(
        "state_directory",
        Without::Words("/var/lib/fingerpost, or below the user's own directories"),
        "\"/var/lib/fingerpost\"",
        "The directory of the engine's id, its count of starts, and users' keys.",
    ),
    Setting::new(
        "contact",
        Without::Value("\"\""),
        "\"noc@example.net\"",
        "sysContact.",
    ),
    Setting::new(
        "location",
        Without::Value("\"\""),
        "\"Rack 7\"",
        "sysLocation.",
    ),
    Setting::new(
        "name",
        Without::Words("the host's name"),
        "\"edge1\"",
        "sysName.",
    ),
    Setting::new(
        "description",
        Without::Words("this program and the host's kernel"),
        "\"core router\"",
        "sysDescr.",
    ),
    Setting::new(
        "object_id",
        Without::Words("that of FINGERPOST-MIB"),
        "\"1.3.6.1.4.1.8072.9999.9999.26224.2.1\"",
        "sysObjectID.",
    ),
    Setting::usual(
        "services",
        "76",
        "sysServices, 0 to 127: the layers that the system serves.",
    ),
    Setting::usual(
        "max_message_bytes",
        "65507",
        "Bytes of an answer at most, 484 to 65507.",
    ),
    Setting::new(
        "allowed_sources",
        Without::Value("[\"127.0.0.0/8\", \"::1/128\"]"),
        "[\"127.0.0.0/8\", \"::1/128\", \"192.0.2.0/24\"]",
        "Prefixes whose requests are answered at full length, beside those of communities: the \
         pollers by version 3 belong here. It makes nobody a user.",
    ),
    Setting::usual(
        "amplification",
        "2",
        "All other sources get at most so many times the bytes that they sent, 1 to 1000000: a \
         forged source shall not pay.",
    ),
    Setting::usual(
        "authentic_amplification",
        "64",
        "The same of messages of version 3 that are authentic and timely: enough for any walk.",
    ),
    Setting::usual(
        "authentication_failure_traps",
        "false",
        "Whether targets are told that somebody asked with a wrong community or key, once a \
         second at most.",
    ),
    Setting::new(
        "link_traps",
        Without::Words("all links"),
        "[\"*\", \"!veth*\"]",
        "Patterns of the links of whose ups and downs targets are told, and with a `!` of those \
         that they are not told of.",
    ),
];

const COMMUNITY: &[Setting] = &[
    Setting::new("name", Without::Value("\"public\""), "\"noc\"", "Its name."),
    Setting::new(
        "sources",
        Without::Value("[\"127.0.0.0/8\", \"::1/128\"]"),
        "[\"192.0.2.0/24\"]",
        "Prefixes that it is taken from, which are answered at full length; none ([]): from \
         anywhere, at limited length.",
    ),
    Setting::new(
        "view",
        Without::Value("\"all\""),
        "\"routes\"",
        "What it sees.",
    ),
    Setting::new(
        "context",
        Without::Value("\"\""),
        "\"netns-blue\"",
        "The context that it asks: `table-100`, `vrf-red`, `netns-blue`, or the daemon's own \
         namespace.",
    ),
];

const USER: &[Setting] = &[
    Setting::new("name", Without::Nothing, "\"ann\"", "The user's name."),
    Setting::new(
        "level",
        Without::Words("all that the keys allow"),
        "\"authPriv\"",
        "The least protection: noAuthNoPriv, authNoPriv or authPriv.",
    ),
    Setting::new(
        "view",
        Without::Value("\"all\""),
        "\"routes\"",
        "What the user sees.",
    ),
    Setting::new(
        "contexts",
        Without::Words("all of the daemon's own namespace"),
        "[\"\", \"netns-blue\"]",
        "Contexts that the user may ask.",
    ),
];

const VIEW: &[Setting] = &[Setting::new(
    "NAME",
    Without::Words("no such view"),
    "[\"1.3.6.1.2.1.1\", \"1.3.6.1.2.1.4.24\", \"!1.3.6.1.2.1.4.24.4\"]",
    "Subtrees that are in the view, and with a `!` those that are not; `*` stands for a number \
     that may be any.",
)];

const TARGET: &[Setting] = &[
    Setting::new(
        "address",
        Without::Nothing,
        "\"192.0.2.9:162\"",
        "The UDP address.",
    ),
    Setting::new(
        "version",
        Without::Value("\"2c\""),
        "\"3\"",
        "\"1\", \"2c\" or \"3\".",
    ),
    Setting::new(
        "community",
        Without::Value("\"public\""),
        "\"noc\"",
        "The community of versions 1 and 2c.",
    ),
    Setting::new(
        "user",
        Without::Words("none, which version 3 does not take"),
        "\"ann\"",
        "The user of version 3.",
    ),
    Setting::new(
        "inform",
        Without::Value("false"),
        "false",
        "Whether what it is told is to be acknowledged, and told again until it is; not with \
         version 1. With version 3 the user needs keys for the receiver's engine: `fingerpost snmp \
         user add --engine-id`.",
    ),
    Setting::new(
        "timeout_millis",
        Without::Value("1500"),
        "1500",
        "Milliseconds until an inform is sent again.",
    ),
    Setting::new(
        "retries",
        Without::Value("5"),
        "5",
        "Times that an inform is sent again.",
    ),
];
