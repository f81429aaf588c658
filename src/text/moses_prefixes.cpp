#include "text/moses_prefixes.h"

#include <array>

#include "base/characters.h"

namespace seqconv::internal::moses {
namespace {

/// Words are separated by blanks; "A..Z" stands for every letter between, and
/// "1..99" for every number.
struct PrefixList {
  std::string_view languages;
  std::string_view always;
  std::string_view before_numbers;
};

/// Those of the Moses toolkit, as sacremoses 0.1.1 has them; without Greek.
// clang-format off: it breaks scripts of wide characters anew each time.
constexpr auto kLists = std::to_array<PrefixList>({
    {"as bn",
     "আম আর ই ইউ এ এইচ এক্স এন এফ এম এল এস ওয়াই কিউ কে জি জে জেড টি ড "
     "ডব্লু ডি পি বি ভি সি হে",
     ""},
    {"ca",
     "A..Z Dr Dra Emm Excma Prof Sr Sra St Sta adm admdor admdora al angl "
     "aprox av c ca cast dc dept dg dir dj dl ds dt dv ed entl espf esq fra "
     "maj màx n nre núm p pl pta ptes pàg smin tel",
     ""},
    {"cs",
     "Bc BcA CSc DiS Dr DrSc Ing JUDr MUDr MVDr MgA Mgr PaedDr PhDr PhMr "
     "PharmDr RNDr RSDr ThDr ThLic abl absol abt ad adj adv aj ak akt alch "
     "amer anat angl anglosas anon ap apod arab arch archit arg astr astrol "
     "atd atp att aut bd belg bibl biogr biol boh bot br bulh bás cca chcsl "
     "chem cit cizojaz col csl círk dat dep dial dl doc dol dop dopr dosl "
     "dór děj dět ed ekon epic etnonym eufem ev event f facs fam fasc fem "
     "fil film fol form fot fr franc fut fyz gen geogr geol geom germ gram "
     "hebr herald hist hl hod hor horn hovor hrsg hud hut ibid ie il imp "
     "impf ind indoevr inf instr interj iron it ión jap jhdt jv kanad "
     "katalán kl klas kniž koed kol komp konj konkr korej kr krit kuch kř "
     "lat les lid lit liturg log lok lék m mat maď meteor metr mj ml mld "
     "mod mp ms mysl n např neklas nepubl nesklon než no nom nprap nr náb "
     "námoř násl něm ob obch obr obyč odd odp ojed okr opr opt orig p part "
     "pas pejor pers pf phil pl plpf pokrač pol pomn popř port pozn prep "
     "prof práv pseud pt předl přel přeprac přivl příl r rcsl red refl reg "
     "repr resp revid rkp roz rozš roč rum rus s samohl samost sect sest "
     "seš sg sign sl slang slov souhl spec sport srov srv st stfr stol stsl "
     "střv subj subst superl sv sz tab tech telev teol tis tj trans typogr "
     "tzn tzv táz tř univ uspoř var vedl verb voj vok vol vs vulg vyd vyobr "
     "vztaž výtv vč vůb zahr zal zast zejm zeměd zkr zprac zvl zájm zř č "
     "čas čes čj čp čín ř řec šk špan švýc",
     ""},
    {"de",
     "1..99 a..z A..Z Adj Adm Adv Art Asst BSE Bart Bldg Brig Bros Buchst "
     "Ca Capt Chr Cmdr Co Col Comdr Con Corp Cpl DR Dkr Dr Ens Gen Gov Hon "
     "Hosp II III IV IX Insp Lt Ltd MM MR MRS MS Maj Messrs Mio Mlle Mme Mr "
     "Mrd Mrs Ms Msgr MwSt No Nos Nr Op Ord Pfc Ph Prof Pvt Rep Reps Res "
     "Rev Rt SA Sen Sens Sfc Sgt Sr St Std Supt Surg VI VII VIII XI XII "
     "XIII XIV XIX XV XVI XVII XVIII XX Zt bzgl bzw ca dergl dgl etc evtl "
     "ff ggf ii iii iv ix jun pp sen sog sogen spp usf usw vgl vi vii viii "
     "vs xi xii xiii xiv xix xv xvi xvii xviii xx zzt",
     ""},
    {"en",
     "A..Z Adj Adm Adv Apr Asst Aug Bart Bldg Brig Bros Capt Cmdr Col Comdr "
     "Con Corp Cpl DR Dec Dr Drs Ens Feb Gen Gov Hon Hosp Hr Insp Jan Jul "
     "Jun Lt MM MR MRS MS Maj Mar Messrs Mlle Mme Mr Mrs Ms Msgr Nos Nov Nr "
     "Oct Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rs Rt Sen Sens Sep Sfc "
     "Sgt Sr St Supt Surg rev v vs",
     "Art No pp"},
    {"es",
     "A..Z Apdo Av Bco Da Dep Dn Dr Dra Excmo Fil Gral Let Lic Prof Pts Rte "
     "Sr Sra Srta Sta Sto Tel Ud Uds Vd Vds a/c adj admón afmo apdo av c "
     "cap cm cta dcha doc ej entlo esq etc gr grs izq kg km mg mm nÃºm núm "
     "p ptas pÃ¡g pÃ¡gs pág págs s vid vol",
     ""},
    {"et fi",
     "A..Z Mr Mrs Ms alik alil amir apul arkkit ass assist dipl dos ent "
     "erikoiseläinl erikoishammasl erikoisl erikoist esim evp fil ft "
     "hallinton hallintot hammaslääket huom ilm jatk jääk kansaned kapt "
     "kenr kers kirjeenv kom komm konst korpr l luutn maist maj mm myöh "
     "neuv nimim nk nyk par po prof pääll res san siht suom sähköp säv t "
     "toht toim tuom ups v vänr vääp ylik ylil ylim ylimatr yliop yliopp "
     "ylip yliv Ä Å Ö",
     ""},
    {"fr",
     "A..Z MM SS al ann apr art auj av b boul c ca cf chap contr d dir e "
     "env etc ex f fasc fig fr fém g h hab i ibid id inf j k l lib m masc "
     "ms n n/réf o p pl pp q r s sec sect sing sq sqq suiv sup suppl t tél "
     "u v vb vol vs w x y z éd",
     ""},
    {"ga", "A..Z Cf Chr Co Dr Uacht cf r Á É Í Ó Ú", "lch lgh uimh"},
    {"gu",
     "આઈ આર ઇ એ એક્સ એચ એન એફ એમ એલ એસ ઓ ક કે ક્યૂ ખ ગ ઘ ઙ ચ છ જ જી જે ઝ "
     "ઝેડ ઞ ટ ટી ઠ ડ ડબલ્યુ ડી ડૉ ડો ઢ ણ ત થ દ ધ ન પ પી ફ બ બી ભ મ ય યુ ર "
     "રૂ લ ળ વ વાય વી શ શ્રી ષ સ સી હ",
     ""},
    {"hi",
     "आइ आर ई ए एक्स एच एन एफ एम एल एस ऐ ऐक्स ऐच ऐन ऐफ ऐम ऐल ऐस ओ क के क्यू "
     "ख ग घ ङ च छ ज ज़ैड जी जे झ ञ ट टी टीवी ठ ड डब्ल्यू डा डी डॉ ढ ण त थ द "
     "ध न प पी फ ब बी भ म य यू र रु ल व वाई वाय वी श श्री ष स सी ह",
     ""},
    {"hu",
     "A..Z Ca De Dr Du Kb Max Min Pl Prof St Szt Vö ca de dr du kb max min "
     "pl prof vö Á É Í Ó Ö Ú Ún Ü ún Ő Ű",
     "Aug Dec Fax Feb Jan Júl Jún Máj Márc Nov Okt Szept Tel aug dec fax "
     "feb jan júl jún máj márc nov okt szept tel Ápr ápr"},
    {"is",
     "a..z A..Z 8vo Hos Khöfn PR Ritstj Rvk Rvík Vf Vl ^ afs al alg alm "
     "andh ao ath aths atr au aukaf bh bls dr ef efn eink end ennfr erl et "
     "fh fl fn fo forl frb frh frl frt fs fsh fsk fskj fsl fst ft fv fyrrn "
     "fyrrv fél físl germ gm gr hdl hdr hf hk hl hljsk hljv hljóðv hlsk "
     "holl hr hrl hv hvk höf kaf kap kg kgúrsk kk kl klst km kr kt kvk "
     "leturbr lh lo ltr mgr millj miðm mlja mljó mm mms mst mín nf nh nhm "
     "nk nl nmgr nt núv ohf pfn pr samb samhlj samn samþ sbr sek sf sfn sh "
     "shlj sign sk skv skál sl sn so st stk sérn sþ tbl teg tfn till tl to "
     "tvt tvíhlj uh umr uppl us vb vh vkf vl vlf vmf vsk vth á áfn áhrs ákv "
     "æ í ísl ó ób ófn óákv útg þf þgf þjs þlt þm þml þolm þt þýð",
     "NR No Nr nR no nr"},
    {"it",
     "A..Z Adj Adm Adv Amn Arch Asst Avv Bart Bcc Bldg Brig Bros Capt Cc "
     "Cmdr Co Col Comdr Con Corp Cpl DR Dott Dr Drs Egr Ens Gen Geom Gov "
     "Hon Hosp Hr Id Ing Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mo Mons "
     "Mr Mrs Ms Msgr Nos Nr Op Ord Pfc Ph Prof Pvt RP RSVP Rag Rep Reps Res "
     "Rev Rif Rt Sen Sens Sfc Sgt Sig Sigg Soc Spett Sr St Supt Surg acc "
     "all banc corr dott ecc es fatt gg int lett ogg on post racc rev ric "
     "seg sgg ss tel v vs",
     "Art No pp"},
    {"kn",
     "ಆರ್ ಇ ಎ ಎಂ ಎಕ್ಸ್ ಎಚ್‌ "
     "ಎನ್ ಎಫ್ ಎಲ್ ಎಸ್ ಐ ಒ ಕೆ "
     "ಕ್ಯೂ ಜಿ ಜೆ ಜೆಡ್ ಟಿ "
     "ಡಬ್ಲ್ಯೂ ಡಾ ಡಿ ಪಿ ಬಿ ಯು "
     "ರೂ ವಿ ವೈ ಶ್ರೀ ಸಿ ಹೆಚ್",
     ""},
    {"lt",
     "A..Z Antr Bal Birž Dr Dz Dž Geg Gerb Gruod Inž Just Ketv Kov Kr Lapkr "
     "Liep Nr Penkt Pirm Pn Pr Prof Rugpj Rugs Saus Sekm Spal Treč Vas Vt a "
     "adv air akad aklg akt al amer anat angl aps apskr apyg arab archeol "
     "archit asist asm asmv astr atsak atsisk austral aut av avd b bažn bdv "
     "bibl biol bkl bot brt brus bt buh buv chem col con conj d dab dail "
     "dek dgs dial dipl dir dirig dktv doc dr drp dėst dš džn e egz eil "
     "ekon el esam etc euf ež fak faks fam farm filol filos fin fiz fiziol "
     "flk fon fot g gen geod geogr geol geom gerb gim glžk gr gram gv gyd "
     "habil her hidr ind insp inž iron isp ist istor it jap juok jūr k kalb "
     "kand kar kas kat kin kl klaus kln kn knyg kom komp koresp kosm kpt kr "
     "kt kul kun kuop kyš l lingv lit log lot ltn m malon mat maž med medž "
     "men menk metal meteor mgnt mgr min mit mjr mln mlrd mok moksl mokyt "
     "mot ms mst mstl muz mėn n neig neol niek nkt nr ntk ofic opt orig p "
     "pan parl pat pav pavad paž pirm pl plg plk poet poez poligr polit ppr "
     "pr pranc prek priet prk prof prok prot prs psich psn pss pvz pšt r "
     "rad red reikšm rel ret rus rš sav saviv sekr sen sk skg skv skyr sl "
     "sov sp spec sport sr st stat str stud sudurt sutr suv sąs sąsk t "
     "teatr tech techn teig teis tekst tel teol tir tūkst up upl v vad vaik "
     "vart ved vet vid virš vksm vlsč vns vok vs vt vtv vulg vv vyr vyresn "
     "zool Ā Č Ē Ģ Ī Įn įl įv Ķ Ļ Ņ Š Šešt š šach šiaur škot šnek Ū ū Ž ž "
     "žml žr",
     "No"},
    {"lv",
     "A..Z Akad Dr Folkl Galv Hum Inv Inž Māksl Mūz Prof Pārb Sertif Sk Soc "
     "Spec Vad Vec Vienk Vietn Virz akad dr folkl galv hum inv inž med "
     "māksl mūz prof pārb sertif sk soc spec vad vec vienk vietn virz Ā Č Ē "
     "Ģ Ī Ķ Ļ Ņ Š Ū Ž",
     "Nr"},
    {"ml",
     "ആർ ഇ എ എം എക്സ് എച്ച് എഫ് എസ് എൻ എൽ ഐ ഒ കെ ക്യൂ ജി ജെ ടി ഡബ്ല്യു ഡി "
     "ഡോ പി ബി യു വി വൈ ശ്രീ സി സെഡ്",
     ""},
    {"mni",
     "আম আর ই ইউ এ এইচ এক্স এন এফ এম এল এস ওয়াই কিউ কে জি জে জেড টি ডব্লু "
     "ডি দা পি বি ভি সি হে",
     ""},
    {"mr",
     "आइ आर ई ए एक्स एच एन एफ एम एल एस ऐ ऐक्स ऐच ऐन ऐफ ऐम ऐल ऐस ओ क के क्यू "
     "ख ग घ ङ च छ ज ज़ैड जी जे झ ञ ट टी ठ ड डब्ल्यू डा डी डॉ ढ ण त थ द ध न "
     "प पी फ ब बी भ म य यू र रु ल व वाई वाय वी श श्री ष स सी ह",
     ""},
    {"nl",
     "A..Z Fa Lt Mej Mme Mw Nrs Vz bacc bc bgen bijv bijz bv dhr dr drs ds "
     "eint ev fa fam gen genm ing ir jhr jkvr jr kand kol lgen lkol maj "
     "mevr mr nrs plv prof ritm tint",
     "Nr nr"},
    {"or",
     "କ ଖ ଗ ଘ ଙ ଚ ଛ ଜ ଝ ଞ ଟ ଠ ଡ ଢ ଣ ତ ଥ ଦ ଧ ନ ପ ଫ ବ ଭ ମ ଯ ର ରୀ ଲ ଳ ଵ ଶ ଷ ସ "
     "ହ ୟ ୱ",
     ""},
    {"pa",
     "ਆਈ ਆਰ ਈ ਏ ਐਕ੍ਸ ਐਚ ਐਲ ਐੱਨ ਐੱਫ ਐੱਮ ਐੱਸ ਓ ਕ ਕੀਓ ਕੇ ਖ ਗ ਘ ਙ ਚ ਛ ਜ ਜੀ ਜੇ ਝ "
     "ਞ ਟ ਟੀ ਠ ਡ ਡਬਲਿਊ ਡਾ ਡੀ ਢ ਣ ਤ ਥ ਦ ਧ ਨ ਪ ਪੀ ਪ੍ਰੋ ਫ ਬ ਬੀ ਭ ਮ ਯ ਯੂ ਰ ਲ ਵ "
     "ਵਾਈ ਵੀ ਸ ਸੀ ਸ੍ਰੀ ਹ ਜ਼ੈਡ ੜ",
     ""},
    {"pl",
     "A..Z Adw Al Art Cd Dh Doc Dr Dyr Dyw Dz Gen Hr Inż Ks Lek Mec Mgr "
     "Nadkom Najśw Nb Np OO Oo Podkom Por Prof Prok Przyp Ps Pt Płk Red Reż "
     "Ryc Rys Sp Spółdz Stow Stoł Szer Tow Tzw adw afr akad al am amer ang "
     "arch art artyst astr austr bałt bdb bm bp br bryg bryt bł cd cdn "
     "centr ces chem chir chiń cyg cyt cyw czes czw czyt daw dcn dekl "
     "demokr det dh diec dn doc dol dop dost dosł dot dr ds dst duszp dypl "
     "dyr dyw dł egz ekol ekon elektr em ew fab farm fot fr gastr gat gen "
     "geogr geol gimn gm godz gosp gr gram górn głęb hab hist hiszp hot hr "
     "id im in inż iron jn jw k kard kat katol kk kl kol kpc kpt kr krak "
     "kryt ks kult laic lek mec med mgr n nadkom najśw nb niem np o oO oo p "
     "pl pn podkom pok pol por pow poz prof prok przyp ps pt pw płk red reż "
     "ryc rys sp społ spółdz spółgł st stow stoł szer tel tj tow tzn tzw ub "
     "ul ur woj ww wyst wył wł zach zagr zak zakł zal zam zast zaw zazw zał "
     "zdr zew zewn zm zn zob Ć ćw ćwicz łac Ś ŚW Śp Św śW śp św Ź Ż żarg "
     "żyd żyw",
     "Nr Tab l nr par pkt r s str tab ust"},
    {"pt tdt",
     "A..Z Adj Adm Adv Ca Capt Cmdr Col Comdr Con Corp Cpl DR DRA Dr Dra "
     "Dras Drs Eng Enga Engas Engos Ex Exmo Exo Fig Gen Hosp II III IV IX "
     "Insp Lda MM MR MRS MS Maj Mrs Ms Msgr Nos Nr Op Ord Pfc Ph Prof Pvt "
     "Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr Sra Sras Srs Sto Supt Surg VI "
     "VII VIII XI XII XIII XIV XIX XV XVI XVII XVIII XX a adj adm adv art b "
     "c cit col con corp cpl d dr dra dras drs e eng enga engas engos ex "
     "exmo exo f fig g h i ii iii iv ix j k l m n o op prof q r rev s sr "
     "sra sras srs sto t u v vi vii viii vs w x xi xii xiii xiv xix xv xvi "
     "xvii xviii xx y z",
     "Art No p pp"},
    {"ro", "A..Z D-na Dl Dvs Pt d-na dl dpdv dvs etc pt șamd", ""},
    {"ru",
     "A..Z 0г 0га 0гг 0дм 0кг 0км 0л 0м 0мг 0мм 0см 0т 1г 1га 1гг 1дм 1кг "
     "1км 1л 1м 1мг 1мм 1см 1т 2г 2га 2гг 2дм 2кг 2км 2л 2м 2мг 2мм 2см 2т "
     "3г 3га 3гг 3дм 3кг 3км 3л 3м 3мг 3мм 3см 3т 4г 4га 4гг 4дм 4кг 4км 4л "
     "4м 4мг 4мм 4см 4т 5г 5га 5гг 5дм 5кг 5км 5л 5м 5мг 5мм 5см 5т 6г 6га "
     "6гг 6дм 6кг 6км 6л 6м 6мг 6мм 6см 6т 7г 7га 7гг 7дм 7кг 7км 7л 7м 7мг "
     "7мм 7см 7т 8г 8га 8гг 8дм 8кг 8км 8л 8м 8мг 8мм 8см 8т 9г 9га 9гг 9дм "
     "9кг 9км 9л 9м 9мг 9мм 9см 9т Cв Cвв Iв Iвв Lв Lвв Mв Mвв Vв Vвв Xв "
     "Xвв А Б В Г Д Е Ж З И Исп Й К Л М Н О П Р С Т Тел У Ф Х Ц Ч Ш Щ Ъ Ы Ь "
     "Э Ю Я бульв в вв г га гг гл гос д дм доп др е ед зам и инд исп к кап "
     "кв кг кл км кол комн коп куб л лиц лл м макс мг мин мл млн млрд мм н "
     "наб нач неуд ном о обл обр общ ок ост отл п пер перераб пл пос пр "
     "просп проф р ред руб с сб св см соч ср ст стр т тел тех тт туп тыс уд "
     "ул уч физ х хор ч чел шт э экз",
     ""},
    {"sk",
     "A..Z Adr Angl ArtD Austr Bc Belg Bibl CSs Dr DrSc Európ Fr Franc Gr "
     "Gréc Ing JUDr Jap Kanad Kr MDDr MUDr MVDr Max Maď Mgr Mil Min Nar Nem "
     "Obr Okr PaedDr Pf PhD PhDr PharmDr Plk Priezv RNDr Roč Sloven Spol "
     "Tal Tel ThDr ThLic Ul Zn absol adj admin adr adv advok afr ak akad "
     "akc akuz al alch amer anat angl anglosas anorg ap apod arch archeol "
     "archit arg art astr astrol astron atp atď austr aut belg bibl biol "
     "bot bud bás býv cest chem cirk csl dat dep det dial diaľ dipl distrib "
     "dokl dopr dosl dram duš dv dvojčl dór ekol ekon el elektr elektrotech "
     "energet epic est et etc etonym eufem európ ev evid expr fa fak fam "
     "farm fem feud fi fil filat filoz fon form fot fr franc fraz fut fyz "
     "fyziol garb gen genet genpor geod geogr geol geom germ gr gréc "
     "gréckokat hebr herald hist hlav hosp hromad hud hypok ident imp impf "
     "indoeur inf inform instr int interj inšt inštr iron jap jaz jedn "
     "juhoamer juhových juhozáp juž kanad kanc kapit kart katastr knih kniž "
     "komp konj konkr kozmet kpt krajč kresť kt kuch lat latinskoamer lek "
     "lex lingv lit litur log lok max maď medzinár mest metr mil min miner "
     "ml mld mn mod mytol napr nar nasl nedok neg negat neklas nem neodb "
     "neos neskl nesklon nespis nespráv neved než niekt niž nom náb nákl "
     "námor nár obch obj obr obv obyč obč občian odb odd ods ojed okr opt "
     "opyt org os osob ot ovoc par part pejor pers pf pl pnl pod podst pokl "
     "polit politol polygr pomn popl por porad porov posch potrav použ poz "
     "pozit poľ poľno poľnohosp poľov pošt pož pr prac predl pren prep "
     "preuk priezv privl prof práv príd príj prík príp prír prísl príslov "
     "príč psych publ pís písm pôv refl reg rep resp rozk rozlič rozpráv "
     "roč ryb rádiotech rím samohl semest sev severoamer severových "
     "severozáp sg skr skup sl soc soch sociol sp spol spoloč spoluhl správ "
     "spôs st star starogréc starorím stol stor str stredoamer stredoškol "
     "subj subst superl sv sz súkr súp súvzť tal tech tel telef teles telev "
     "teol trans turist tuzem typogr tzn tzv ukaz ul umel univ ust ved vedľ "
     "verb veter vin viď vl vod vodohosp vulg vyj vys vysokoškol vzťaž vôb "
     "vých výd výrob výsk výsl výtv výtvar význ včel vš všeob zahr zar "
     "zariad zast zastar zastaráv zb zdravot združ zjemn zlat zn zool zr "
     "zried zv záhr zák zákl zám záp západoeur zázn územ účt Č Čes Čs č "
     "čast čes čl čs čísl živ",
     ""},
    {"sl",
     "A..Z Apr Avg Cf Dec Dr Feb Gl Jan Jul Jun Mar Nov Npr Okt Op Oz Prim "
     "Sep Sept Sl Tj apr avg cf d dec dipl dr feb gl ing itd itn jan jul "
     "jun mar nov npr okt op oz prev prim sep sept sl tj",
     "Št št"},
    {"sv",
     "A..Z AB VG adv apr aug d dec dvs etc f feb fil from iaf jan jfr jul "
     "jun jur kand kl kr lic mag mao mar mfl mha mm nov okt osv pga prop s "
     "sep tex tom vol vs Ä Å Ö",
     ""},
    {"ta",
     "ஆர் ஈ எஃப் எக்ஸ் எச் என் எம் எல் எஸ் ஏ ஐ ஓ கியூ கே சீ செட் ஜீ ஜே ஜை "
     "டபிள்-யூ டீ ட்டீ திரு பீ ப்பீ யூ ர வீ வை ஹெச் ூ",
     ""},
    {"te",
     "ఆర్ ఇ ఎ ఎం ఎక్స్ ఎన్ ఎఫ్ ఎమ్ ఎల్ ఎస్ ఐ ఓ కె క్యూ జి జె జెడ్ టి "
     "డబ్ల్యూ డి పి బి యు ర వి వై శ్రీ సి "
     "హెచ్‌ "
     "ూ",
     ""},
    {"yue zh", "A..Z Ā Č Ē Ģ Ī Ķ Ļ Ņ Š Ū Ž", "No Nr"},
});
// clang-format on

const PrefixList& list_of(std::string_view language) {
  const PrefixList* english = nullptr;
  for (const PrefixList& list : kLists)
    for (std::string_view code : split_words(list.languages)) {
      if (code == language)
        return list;
      if (code == "en")
        english = &list;
    }
  return *english;
}

void add_range(
    std::string_view first, std::string_view last, std::unordered_set<std::string>& words) {
  if (first.front() > '9') {
    for (char c = first.front(); c <= last.front(); ++c)
      words.emplace(1, c);
    return;
  }
  for (int n = std::stoi(std::string(first)); n <= std::stoi(std::string(last)); ++n)
    words.insert(std::to_string(n));
}

std::unordered_set<std::string> expand(std::string_view list) {
  std::unordered_set<std::string> words;
  for (std::string_view word : split_words(list)) {
    const size_t dots = word.find("..");
    if (dots == std::string_view::npos)
      words.emplace(word);
    else
      add_range(word.substr(0, dots), word.substr(dots + 2), words);
  }
  return words;
}

}  // namespace

Prefixes prefixes_of(std::string_view language) {
  const PrefixList& list = list_of(language);
  return {expand(list.always), expand(list.before_numbers)};
}

}  // namespace seqconv::internal::moses
